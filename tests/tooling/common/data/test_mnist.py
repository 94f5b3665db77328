"""Tests of MNIST: shapes, the split, and labels that belong to their images."""

import numpy as np

from common.data import load_mnist, mnist


def test_the_digits_have_the_promised_shapes_and_types():
    train_images, train_labels, test_images, test_labels = load_mnist()
    assert (train_images.shape, test_images.shape) == ((4000, 1, 28, 28), (1000, 1, 28, 28))
    assert train_images.dtype == test_images.dtype == np.float32
    assert (train_labels.shape, test_labels.shape) == ((4000,), (1000,))
    assert train_labels.dtype == test_labels.dtype == np.int64
    assert (train_images.min(), train_images.max()) == (0, 1)


def test_each_digit_is_there_equally_often_and_every_ten_images_hold_all():
    data = load_mnist()
    for labels, each in ((data.train_labels, 400), (data.test_labels, 100)):
        assert np.bincount(labels).tolist() == [each] * 10
        assert (np.sort(labels.reshape(-1, 10)) == np.arange(10)).all()


def test_no_image_is_in_both_parts():
    data = load_mnist()
    train = {image.tobytes() for image in data.train_images}
    assert not any(image.tobytes() in train for image in data.test_images)


def test_a_label_goes_with_its_image():
    """The nearest mean of the training images names most test images rightly."""
    data = load_mnist()
    means = np.stack([data.train_images[data.train_labels == d].mean(0) for d in range(10)])
    distances = ((data.test_images[:, None] - means) ** 2).sum(axis=(2, 3, 4))  # (n, 10)
    assert (distances.argmin(axis=1) == data.test_labels).mean() > 0.75


def test_digits_are_split_by_their_place_in_the_file():
    labels = np.repeat(np.arange(10, dtype=np.uint8), 3)
    images = np.arange(30, dtype=np.uint8)[:, None]
    assert mnist.interleave(images, labels)[:, 0].tolist() == [
        *range(0, 30, 3),
        *range(1, 30, 3),
        *range(2, 30, 3),
    ]


def test_what_a_caller_does_to_the_digits_stays_with_the_caller():
    load_mnist().train_images[:] = 7
    assert load_mnist().train_images.max() == 1
