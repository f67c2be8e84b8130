"""Asks a Prometheus, for scripts/prometheus.sh: whether its target is up and its rules are well, and
each query of a dashboard of Grafana's. A query needs an answer that can be read; it may be empty."""

import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

BASE, DASHBOARD = sys.argv[1:]
TRIES = 120


def ask(path, **arguments):
    url = f"{BASE}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    try:
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{arguments}: {error.read().decode()}")


def until(look, what):
    for _ in range(TRIES):
        try:
            if look():
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.5)
    sys.exit(f"{what}: not within {TRIES // 2} s")


def queries(part):
    """Those of a dashboard, with what Grafana puts in place of its variables."""
    if isinstance(part, list):
        return [query for one in part for query in queries(one)]
    if not isinstance(part, dict):
        return []
    own = [part["expr"]] if "expr" in part else []
    own = [re.sub(r"\$__(rate_)?interval", "10s", query) for query in own]
    own = [re.sub(r'"\$\{?\w+\}?"', '".*"', query) for query in own]
    return own + [query for one in part.values() for query in queries(one)]


def targets():
    return ask("targets")["activeTargets"]


def rules():
    return [rule for group in ask("rules")["groups"] for rule in group["rules"]]


until(lambda: [target["health"] for target in targets()] == ["up"], "a scrape")
until(lambda: rules() and all(rule["health"] != "unknown" for rule in rules()), "rules")
wrong = [f"{rule['name']}: {rule.get('lastError')}" for rule in rules() if rule["health"] != "ok"]
if wrong:
    sys.exit("\n".join(wrong))
# A rate needs two scrapes.
until(lambda: ask("query", query="count_over_time(up[1m])")["result"][0]["value"][1] >= "3", "scrapes")
with open(DASHBOARD, encoding="utf-8") as file:
    asked = queries(json.load(file))
empty = [query for query in asked if not ask("query", query=query)["result"]]
print(f"rules: {len(rules())} well; queries: {len(asked)} answered, of them without a series: {len(empty)}")
for query in empty:
    print(f"  {query}")
