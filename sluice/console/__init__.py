"""The web console on the user's machine: a local proxy between the browser and the API.

`access` decides whose requests the proxy accepts, and `forwarding` which of them go to the API. `files` serves the
page, `server` is the HTTP server, and `opening` opens the browser. Each threat that they answer is in
docs/internals/console.md.
"""
