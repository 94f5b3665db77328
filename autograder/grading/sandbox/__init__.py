"""The sandbox: processes that run student code, and the judge's protocol with them."""
