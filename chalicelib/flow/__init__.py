"""Steps: gather facts, let `core` decide, commit the plan. A step knows the ports, not AWS."""
