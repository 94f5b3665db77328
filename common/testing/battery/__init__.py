"""The battery: what no function of the course may do, checked once for all of them."""
