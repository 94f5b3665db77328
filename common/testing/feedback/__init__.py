"""Why a test failed, in words, and which known mistake explains it."""
