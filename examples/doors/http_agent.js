// A server that decides: long while the close is above its average of 20 bars.
//
// node examples/doors/http_agent.js 8100 &
// agent-gym backtest --agent door/http --param url=http://127.0.0.1:8100 --market synthetic/btc-1h

const sessions = new Map(); // one episode each

function decide(question) {
  const answer = { id: question.id }, here = sessions.get(question.session) ?? {};
  sessions.set(question.session, here);
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
  let body = "";
  for await (const chunk of request) body += chunk;
  response.end(JSON.stringify(decide(JSON.parse(body))));
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log(server.address().port));
