KEPT: list[tuple[bytes, bytes]]
