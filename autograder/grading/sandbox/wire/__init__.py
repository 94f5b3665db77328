"""Serialization between judge and child: frames of msgpack with raw array buffers."""
