"""What presents answers: the statement in sentences, pictures and tables.

It imports `profile` and below; nothing below imports it at the top of a module.
"""
