"""Expected values for assignment 2: PyTorch in float64, on NumPy arrays.

The weights of a network are separate arguments, in the order of its docstring.
"""

import numpy as np
import torch
import torch.nn.functional as F


def linear(x, w, b):
    """The output of a linear layer whose w has the shape (d_in, d_out)."""
    return _array(F.linear(_tensor(x), _tensor(w).T, _tensor(b)), x.dtype)


def linear_gradients(x, w, b, dout):
    """dx, dw and db of a linear layer, given the gradient of its output."""
    inputs = [_tensor(array).requires_grad_() for array in (x, w, b)]
    out = F.linear(inputs[0], inputs[1].T, inputs[2])
    gradients = torch.autograd.grad(out, inputs, _tensor(dout))
    return tuple(_array(gradient, x.dtype) for gradient in gradients)


def cross_entropy(logits, labels):
    """The mean loss, and its gradient in the dtype of the logits."""
    inputs = _tensor(logits).requires_grad_()
    loss = F.cross_entropy(inputs, _labels(labels))
    return loss.item(), _array(torch.autograd.grad(loss, inputs)[0], logits.dtype)


def lenet(x, *weights):
    """The logits of a LeNet."""
    return _array(_lenet(_tensor(x), *map(_tensor, weights)), weights[0].dtype)


def lenet_gradients(x, labels, *weights):
    """The mean loss of a LeNet, and the gradient of each of its weights."""
    return _loss_and_gradients(_lenet, x, labels, weights)


def lenet_maps(x, *weights):
    """The feature maps of a LeNet's two convolutions, after the relu."""
    tensors = [_tensor(array) for array in weights]
    first = F.relu(F.conv2d(_tensor(x), tensors[0], tensors[1]))
    second = F.relu(F.conv2d(F.max_pool2d(first, 2), tensors[2], tensors[3]))
    return tuple(_array(maps, weights[0].dtype) for maps in (first, second))


def mlp(x, *weights):
    """The logits of an MLP."""
    return _array(_mlp(_tensor(x), *map(_tensor, weights)), weights[0].dtype)


def mlp_gradients(x, labels, *weights):
    """The mean loss of an MLP, and the gradient of each of its weights."""
    return _loss_and_gradients(_mlp, x, labels, weights)


def sgd_steps(parameter, gradients, rates, momentum):
    """One array after each step, given the gradient and the learning rate of each step."""
    return _steps(torch.optim.SGD, parameter, gradients, rates, momentum=momentum)


def adam_steps(parameter, gradients, rates, beta1, beta2, epsilon):
    """The same for Adam."""
    return _steps(torch.optim.Adam, parameter, gradients, rates, betas=(beta1, beta2), eps=epsilon)


def lenet_training(x, labels, validation_x, rates, optimizer, momentum, *weights):
    """A LeNet trained for some epochs, each of a single step with all images at once.

    Returns the loss before each step, and after each step the logits of all images, the logits of
    the validation images, and all weights in one row.
    """
    tensors = [_tensor(array).requires_grad_() for array in weights]
    algorithm = _optimizer(optimizer, tensors, momentum)
    x, validation_x, labels = _tensor(x), _tensor(validation_x), _labels(labels)
    losses, snapshots = [], []
    for rate in rates:
        algorithm.param_groups[0]["lr"] = rate
        algorithm.zero_grad()
        loss = F.cross_entropy(_lenet(x, *tensors), labels)
        loss.backward()
        algorithm.step()
        losses.append(loss.item())
        after = [_lenet(images, *tensors) for images in (x, validation_x)]
        row = torch.cat([tensor.flatten() for tensor in tensors])
        snapshots.append([tensor.detach() for tensor in (*after, row)])
    stacked = (torch.stack(entries).numpy() for entries in zip(*snapshots, strict=True))
    return np.array(losses), *stacked


def receptive_field(layers):
    """The number of pixels that an output depends on, and the distance to the next one's field.

    Found by gradients, through convolutions whose weights are all 1.
    """
    length = 2
    for size, step in reversed(layers):
        length = (length - 1) * step + size
    x = torch.ones(1, 1, length, dtype=torch.float64, requires_grad=True)
    out = x
    for size, step in layers:
        out = F.conv1d(out, torch.ones(1, 1, size, dtype=torch.float64), stride=step)
    seen = [
        torch.autograd.grad(out[0, 0, index], x, retain_graph=True)[0][0, 0].nonzero()[:, 0]
        for index in (0, 1)
    ]
    first, second = seen
    return np.array(first[-1] - first[0] + 1), np.array(second[0] - first[0])


def _lenet(x, conv1_w, conv1_b, conv2_w, conv2_b, linear1_w, linear1_b, linear2_w, linear2_b):
    x = F.max_pool2d(F.relu(F.conv2d(x, conv1_w, conv1_b)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, conv2_w, conv2_b)), 2)
    return _mlp(x, linear1_w, linear1_b, linear2_w, linear2_b)


def _mlp(x, linear1_w, linear1_b, linear2_w, linear2_b):
    hidden = F.relu(F.linear(x.flatten(1), linear1_w.T, linear1_b))
    return F.linear(hidden, linear2_w.T, linear2_b)


def _loss_and_gradients(network, x, labels, weights):
    tensors = [_tensor(array).requires_grad_() for array in weights]
    loss = F.cross_entropy(network(_tensor(x), *tensors), _labels(labels))
    gradients = torch.autograd.grad(loss, tensors)
    return loss.item(), *(_array(gradient, weights[0].dtype) for gradient in gradients)


def _steps(algorithm, parameter, gradients, rates, **settings):
    tensor = _tensor(parameter).requires_grad_()
    optimizer = algorithm([tensor], lr=1.0, **settings)
    after = []
    for gradient, rate in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        tensor.grad = _tensor(gradient)
        optimizer.step()
        after.append(_array(tensor, parameter.dtype))
    return np.stack(after)


def _optimizer(name, tensors, momentum):
    if name == "sgd":
        return torch.optim.SGD(tensors, lr=1.0, momentum=momentum)
    return torch.optim.Adam(tensors, lr=1.0)


def _tensor(array):
    # torch takes no views with negative strides, and a copy can't be changed by anyone else.
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _labels(labels):
    return torch.from_numpy(np.array(labels, dtype=np.int64))


def _array(tensor, dtype):
    return tensor.detach().numpy().astype(dtype)
