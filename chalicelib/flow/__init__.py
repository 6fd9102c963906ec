"""The steps: gather facts, let `core` decide, commit the plan. A step uses the ports and never AWS itself."""
