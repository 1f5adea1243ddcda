version: str
"""Version of the C interface that the .pxd declares."""
