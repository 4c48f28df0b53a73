// An agent with an agent card (A2A 1.0): long while the close is above its average of 20 bars.
//
// node examples/doors/a2a_agent.js 8101 &
// agent-gym backtest --agent door/a2a --param url=http://127.0.0.1:8101 --market synthetic/btc-1h

const contexts = new Map(); // one episode each

function decide(question, context) {
  const answer = { id: question.id }, here = contexts.get(context) ?? {};
  contexts.set(context, here);
  if (question.ask === "hello") answer.protocol = 1;
  if (question.ask === "start") {
    Object.assign(here, { column: question.episode.features.indexOf("close"), closes: [] });
  } else if (question.ask === "act") {
    here.closes = [...here.closes, question.features[here.column]].slice(-20);
    const mean = here.closes.reduce((sum, close) => sum + close, 0) / here.closes.length;
    answer.target = here.closes.at(-1) > mean ? 1 : 0;
  }
  return answer;
}

const server = require("http").createServer(async (request, response) => {
  if (request.url === "/.well-known/agent-card.json") {
    const url = `http://${request.headers.host}/a2a`;
    const way = { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" };
    return response.end(JSON.stringify({
      name: "average", description: "Follows an average", version: "1.0.0", capabilities: {},
      supportedInterfaces: [way], defaultInputModes: ["application/json"],
      defaultOutputModes: ["application/json"],
      skills: [{ id: "decide", name: "Decide", description: "A target a bar", tags: ["trading"] }],
    }));
  }
  let body = "";
  for await (const chunk of request) body += chunk;
  const asked = JSON.parse(body), { messageId, contextId, parts } = asked.params.message;
  const message = { messageId: `re-${messageId}`, contextId, role: "ROLE_AGENT",
    parts: [{ data: decide(parts[0].data, contextId) }] };
  response.end(JSON.stringify({ jsonrpc: "2.0", id: asked.id, result: { message } }));
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log(server.address().port));
