"""Export and import namespaces of an installation, as files."""
