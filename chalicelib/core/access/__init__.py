"""Who may do what: the signer of a request, the roles of a namespace, and the rights that routes need (O5)."""
