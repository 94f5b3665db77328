"""The warm judge: loads an assignment's tests once, then grades many submissions."""
