"""Everything around the code: resources, policies, packaging, deployment, and the local cloud."""
