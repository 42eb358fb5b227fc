#!/usr/bin/env python3
"""Decodes recordings with Python's own libraries, for the comparison in corpus_test.go.

    python3 testdata/digests.py FOLDER > testdata/digests.tsv

FOLDER holds the recordings and their INDEX.tsv. One line for each exchange: file, number, method, status, and of both bodies the length and the beginning of the SHA-256. It shares nothing with the importer: PyYAML, json, gzip, zlib, and a reader of HTTP of its own.
"""
import base64
import gzip
import hashlib
import json
import os
import re
import sys
import zlib

import yaml


class Loader(yaml.CSafeLoader):
    pass


def plain(loader, suffix, node):
    """Reads what an unknown tag marks as it stands; base64 where it is Ruby's."""
    if suffix == "binary":
        return base64.b64decode(node.value)
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


Loader.add_multi_constructor("!", plain)
Loader.add_multi_constructor("tag:yaml.org,2002:python/", plain)


class Number(float):
    """A number that keeps its text."""


def number(loader, node):
    n = Number(float(yaml.SafeLoader.construct_yaml_float(loader, node)))
    n.text = node.value
    return n


Loader.add_constructor("tag:yaml.org,2002:float", number)
# Dates stay texts.
Loader.yaml_implicit_resolvers = {k: [(tag, exp) for tag, exp in v if tag != "tag:yaml.org,2002:timestamp"] for k, v in Loader.yaml_implicit_resolvers.items()}


def compact(v):
    """JSON without spaces, numbers as they were written."""
    if isinstance(v, Number):
        return v.text
    if isinstance(v, dict):
        return "{" + ",".join(json.dumps(k, ensure_ascii=False) + ":" + compact(x) for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "[" + ",".join(compact(x) for x in v) + "]"
    return json.dumps(v, ensure_ascii=False)


def raw(v):
    if v is None:
        return b""
    return v if isinstance(v, bytes) else v.encode("utf-8")


def first(headers, name):
    for k, v in (headers or {}).items():
        if k.lower() == name:
            v = v[0] if isinstance(v, list) else v
            return v.decode() if isinstance(v, bytes) else v
    return ""


def decoded(body, headers):
    coding = first(headers, "content-encoding").lower()
    if coding == "gzip" and body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if coding == "deflate" and body:
        for bits in (15, -15):
            try:
                return zlib.decompress(body, bits)
            except zlib.error:
                pass
    return body


def vcr(message):
    if "parsed_body" in message:
        return compact(message["parsed_body"]).encode("utf-8")
    body = message.get("body")
    if isinstance(body, dict):
        body = body.get("string")
    return decoded(raw(body), message.get("headers"))


def pair(request, response, status):
    return request["method"].upper(), status, vcr(request), vcr(response)


def unchunk(body):
    out = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        n = int(size.split(b";")[0], 16)
        if n == 0:
            return out
        out += body[:n]
        body = body[n + 2:]


def wire(data):
    head, body = re.split(rb"\r?\n\r?\n", data, maxsplit=1)
    lines = head.decode("latin-1").splitlines()
    headers = dict(re.split(": ?", line, maxsplit=1) for line in lines[1:])
    if first(headers, "transfer-encoding") == "chunked":
        body = unchunk(body)
    return lines[0], decoded(body, headers)


def exchanges(name, data):
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if name.startswith("httprr"):
        _, _, data = data.partition(b"\n")
        while data:
            line, _, data = data.partition(b"\n")
            a, b = map(int, line.split())
            q, body = wire(data[:a])
            p, reply = wire(data[a:a + b])
            data = data[a + b:]
            yield q.split()[0], int(p.split()[1]), body, reply
        return
    doc = json.loads(data) if data.lstrip()[:1] in (b"{", b"[") else yaml.load(data, Loader)
    if isinstance(doc, list):
        for d in doc:
            body = lambda v: compact(v).encode() if isinstance(v, (dict, list)) else raw(v)
            reply = bytes.fromhex(d["response"]) if d.get("responseIsBinary") else body(d["response"])
            yield d["method"], d["status"], body(d["body"]), reply
    elif "log" in doc:
        for e in doc["log"]["entries"]:
            headers = lambda m: {h["name"]: h["value"] for h in m["headers"]}
            content = e["response"]["content"]
            reply = content.get("text", "").encode()
            if content.get("encoding") == "base64":
                reply = b"".join(base64.b64decode(x) for x in json.loads(reply))
            yield e["request"]["method"], e["response"]["status"], e["request"].get("postData", {}).get("text", "").encode(), decoded(reply, headers(e["response"]))
    elif "http_interactions" in doc:
        for x in doc["http_interactions"]:
            status = x["response"]["status"]
            yield pair(x["request"], x["response"], status["code"] if isinstance(status, dict) else status)
    elif "requests" in doc:
        for q, p in zip(doc["requests"], doc["responses"], strict=True):
            yield pair(q, p, p["status"]["code"])
    elif "interactions" in doc:
        for x in doc["interactions"]:
            p = x["response"]
            yield pair(x["request"], p, p["code"] if "code" in p else p["status"]["code"])
    else:
        yield pair(doc["request"], doc["response"], doc["response"]["status"]["code"])


def main(folder):
    with open(os.path.join(folder, "INDEX.tsv"), encoding="utf-8") as index:
        names = [line.split("\t")[0] for line in index][1:]
    for name in names:
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        for i, (method, status, request, response) in enumerate(exchanges(name, data)):
            print(name, i + 1, method, status, *(x for b in (request, response) for x in (len(b), hashlib.sha256(b).hexdigest()[:16])), sep="\t")


main(sys.argv[1])
