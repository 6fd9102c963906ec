"""What users do to schedules and messages: put, enable, pause, resume, run now, delete."""
