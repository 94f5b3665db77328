"""What crosses between the judge and a child: frames of msgpack with raw array buffers."""
