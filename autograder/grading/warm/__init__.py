"""The warm judge: a process that reads an assignment's tests once and grades many submissions."""
