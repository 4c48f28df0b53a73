// An endpoint that speaks as OpenAI's does: BUY while the close is above its average.
//
// node examples/doors/openai_agent.js 8102 &
// agent-gym backtest --agent door/openai --param model=average \
//     --param url=http://127.0.0.1:8102/v1 --market synthetic/btc-1h

const server = require("http").createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const asked = JSON.parse(body), text = asked.messages.at(-1).content;
  const closes = text.match(/close: (.*)\./)[1].split(", ").map(Number);
  const mean = closes.reduce((sum, close) => sum + close, 0) / closes.length;
  const content = closes.at(-1) > mean ? "BUY" : "HOLD";
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({
    id: "1", object: "chat.completion", created: 0, model: asked.model,
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content } }],
  }));
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log(server.address().port));
