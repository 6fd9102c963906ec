"""Export what is final into the lake; read the reports of days."""
