"""An agent as one finds it: it knows nothing of how it is evaluated. Only the standard library, so that it runs everywhere."""

import json, os, pathlib, urllib.request
from datetime import date

PROMPT = (pathlib.Path(__file__).parent.parent / "prompts" / "system.md").read_text()
TOOLS = [{"type": "function", "function": {
    "name": "lookup_order", "description": "Looks up an order.",
    "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}}}]


def chat(messages):
    body = {"model": "gpt-4o-mini", "messages": messages, "tools": TOOLS}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]


def lookup_order(order, tenant):
    request = urllib.request.Request(f"{os.environ['CRM_URL']}/orders/{order}", headers={"X-Tenant": tenant})
    with urllib.request.urlopen(request) as reply:
        return reply.read().decode()


def answer(question, tenant):
    messages = [{"role": "system", "content": f"{PROMPT}Today is {date.today()}."}, {"role": "user", "content": question}]
    while True:
        message = chat(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": lookup_order(arguments["order"], tenant)})
