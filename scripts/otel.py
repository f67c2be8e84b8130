"""A collector for scripts/otel.sh: reads OTLP in JSON by the protocol's own definitions.

The JSON form of protobuf writes bytes in base64; OTLP writes ids as hexadecimal digits instead, so
these are turned round before the library reads the rest. Ends with status 0 once metrics, 20
spans and 20 lines of the log about statements have come, with 1 at the first request that cannot be
read.
"""

import base64
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
SPANS = 20
seen = {"metrics": 0, "points": 0, "spans": 0, "records": 0}


def with_base64(value):
    """The same with ids in base64."""
    if isinstance(value, list):
        return [with_base64(one) for one in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, one in value.items():
        if key in IDS:
            raw = bytes.fromhex(one)
            assert len(raw) == IDS[key], f"{key} has {len(raw)} bytes"
            out[key] = base64.b64encode(raw).decode()
        else:
            out[key] = with_base64(one)
    return out


def read_metrics(body):
    request = json_format.ParseDict(body, ExportMetricsServiceRequest())
    for resource in request.resource_metrics:
        names = {attribute.key for attribute in resource.resource.attributes}
        assert {"service.name", "service.version", "service.instance.id"} <= names, names
        for scope in resource.scope_metrics:
            seen["metrics"] += len(scope.metrics)
            for metric in scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                assert data.data_points, metric.name
                seen["points"] += len(data.data_points)
                for point in data.data_points:
                    assert 0 < point.start_time_unix_nano <= point.time_unix_nano, metric.name
                    if metric.WhichOneof("data") == "histogram":
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                        assert sum(point.bucket_counts) == point.count


def read_spans(body):
    request = json_format.ParseDict(body, ExportTraceServiceRequest())
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert span.start_time_unix_nano <= span.end_time_unix_nano, span
                seen["spans"] += 1


def read_records(body):
    request = json_format.ParseDict(body, ExportLogsServiceRequest())
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                assert record.time_unix_nano and record.severity_number, record
                assert record.event_name.startswith("onramp."), record
                assert record.body.string_value, record
                if record.event_name == "onramp.statement":
                    assert record.trace_id and record.span_id, record
                    seen["records"] += 1


READERS = {"/v1/metrics": read_metrics, "/v1/traces": read_spans, "/v1/logs": read_records}


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            READERS[self.path](with_base64(body))
        except Exception as error:  # whatever it is, the request is not one of the protocol
            print(f"{self.path}: {error!r}", flush=True)
            os._exit(1)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        if seen["metrics"] and seen["spans"] >= SPANS and seen["records"] >= SPANS:
            said = "read: {metrics} metrics, {points} points, {spans} spans, {records} lines of the log"
            print(said.format(**seen), flush=True)
            os._exit(0)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Collector)
print("port", server.server_port, flush=True)
sys.stdout.flush()
server.serve_forever()
