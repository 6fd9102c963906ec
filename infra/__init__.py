"""What surrounds the code: its resources, policies, packaging, deployment, and the cloud on a laptop."""
