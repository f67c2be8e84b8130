#!/usr/bin/env python3
"""What: prints the list of what the program is made of (CycloneDX 1.5, JSON): every package that its build
  uses, with version, license and the checksum of Cargo.lock.
Why: cargo knows all of it; a tool of its own took minutes to build.
Changes on the machine: nothing.
Restores: nothing.
"""

import json
import subprocess
import tomllib

metadata = json.loads(subprocess.check_output(
    ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]))
with open("Cargo.lock", "rb") as file:
    locked = tomllib.load(file)["package"]
checksums = {(one["name"], one["version"]): one.get("checksum") for one in locked}
packages = {one["id"]: one for one in metadata["packages"]}
nodes = {one["id"]: one for one in metadata["resolve"]["nodes"]}
program = next(one for one in packages.values() if one["name"] == "onramp" and one["source"] is None)


def used(node):
    """Packages that are built into the program, or build it; not those of tests alone."""
    return [one["pkg"] for one in nodes[node]["deps"]
            if any(kind["kind"] != "dev" for kind in one["dep_kinds"])]


found, todo = {program["id"]}, [program["id"]]
while todo:
    new = set(used(todo.pop())) - found
    found |= new
    todo += new


def component(package):
    kind = "application" if package is program else "library"
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version}"
    made = {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if package["license"]:
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksums.get((name, version)):
        made["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    return made


made = {one: component(packages[one]) for one in found}
print(json.dumps({
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"component": made.pop(program["id"])},
    "components": sorted(made.values(), key=lambda one: one["bom-ref"]),
    "dependencies": [
        {"ref": component(packages[one])["bom-ref"],
         "dependsOn": sorted({component(packages[other])["bom-ref"] for other in used(one)})}
        for one in sorted(found)],
}, indent=1))
