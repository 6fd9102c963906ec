"""News from outside becomes events, and events are applied to the schedules that wait for them."""
