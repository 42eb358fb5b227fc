import json, sys
from support.agent import answer  # unchanged; reads OPENAI_BASE_URL by itself

for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({"output": answer(case["input"], tenant=case["tool_context"]["tenant_id"])}), flush=True)
