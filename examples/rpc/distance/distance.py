"""Runs a program of the guide on encodings (docs/guides/rpc-encodings.md), which has `distance` and `ask`. The test
puts it where Python finds it. `distance.py serve PROGRAM NAME` | `distance.py ask PROGRAM NAME X Y`"""

import importlib
import sys

from ramway.rpc import Client, Server

what, program, name, *point = sys.argv[1:]
module = importlib.import_module(program)
if what == "serve":
    server = Server(name)
    server.method("Point.Distance")(module.distance)
    server.run()
else:
    with Client.connect(name) as client:
        print(module.ask(client, *map(float, point)))
