"""Export the rows of namespaces into files, and import them into another installation."""
