"""Generates a synthetic landscape picture from a seed, for the lab on convolution."""

import numpy as np
from jaxtyping import Float

HEIGHT, WIDTH = 96, 128
HORIZON = 58
SKY = (slice(4, 20), slice(4, 60))  # where there is nothing but sky and noise


def photograph(seed: int = 0, noise: float = 0.02) -> Float[np.ndarray, "96 128"]:
    """A landscape in shades of gray, from 0 (black) to 1 (white).

    noise: the standard deviation of each pixel's noise.
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    picture = np.full((HEIGHT, WIDTH), 0.8)  # sky
    hills = HORIZON - 10 - 6 * np.sin(columns / 19 + 1) - 3 * np.sin(columns / 7)
    picture[rows > hills] = 0.45
    picture[rows > HORIZON] = 0.3 + 0.1 * np.sin(columns / 3 + rows / 5)[rows > HORIZON]  # a field
    picture[40:78, 70:108] = 0.9  # a house, whose walls are upright
    roof = (rows > 22) & (rows < 40) & (np.abs(columns - 89) < 1.3 * (rows - 22))
    picture[roof] = 0.15
    picture[56:78, 84:94] = 0.1  # its door
    for left in (74, 98):
        picture[48:56, left : left + 7] = 0.2  # and its windows
    for trunk, top in ((18, 44), (34, 50), (52, 46)):
        picture[top:76, trunk : trunk + 4] = 0.05
        crown = (rows - top) ** 2 + (columns - trunk - 1.5) ** 2 < 90
        picture[crown] = 0.2
    return np.clip(picture + rng.normal(0, noise, picture.shape), 0, 1)
