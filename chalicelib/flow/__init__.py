"""One short file per arrow of the system: gather facts, let the core decide, apply. Knows ports, not AWS."""
