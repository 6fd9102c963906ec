"""The changes of a schedule: put, enable, pause, resume, disable, delete. Messages are schedules, too."""
