"""Operations that tests request by name, and that run in student code's process."""
