"""The calculator in the browser: the page, its fields and answers, and the server on this machine."""
