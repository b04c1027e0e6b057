"""A Zenoh client that knows of Ramway only what docs/guides/bridge-format.md says: answers each message of a topic in another one.

usage: client.py ENDPOINT KEY-IN KEY-OUT
"""

import json
import struct
import sys

import zenoh


def main() -> None:
    endpoint, key_in, key_out = sys.argv[1:]
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([endpoint]))
    config.insert_json5("connect/timeout_ms", "-1")
    config.insert_json5("scouting/multicast/enabled", "false")
    with zenoh.open(config) as session:
        # Kept by a name: without one it is undeclared at once.
        subscriber = session.declare_subscriber(key_in)
        for sample in subscriber:
            magic, type_id, _machine, _topic, number, time, tag = struct.unpack("<4sI5Q", bytes(sample.attachment))
            assert magic == b"RWB\x01" and time > 0, (magic, time)
            answer = f"{number} {type_id} {tag} ".encode() + bytes(sample.payload)
            session.put(key_out, answer)


main()
