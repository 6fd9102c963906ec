"""Turn S3 notifications, posted events and due fires into events, and apply these to the schedules that wait."""
