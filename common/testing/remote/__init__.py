"""Operations that tests ask for by name, and that run beside student code."""
