"""What presents answers: the statement in sentences, pictures and tables. Imports `profile` and below; nothing imports it at the top."""
