// A bot that trades through `agent-gym mcp`: long while the close is above its average.
// MCP over pipes is JSON-RPC, one message a line, so no library is needed.
// node examples/doors/mcp_client.js agent-gym mcp

const { spawn } = require("child_process");
const gym = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
let number = 0;
const send = (message) => gym.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
require("readline").createInterface({ input: gym.stdout }).on("line", (line) => {
  const said = JSON.parse(line);
  waiting.get(said.id)?.(said.result);
});
const ask = (method, params) => new Promise((done) => {
  waiting.set(++number, done);
  send({ id: number, method, params });
});
const call = async (name, args) =>
  (await ask("tools/call", { name, arguments: args })).structuredContent;

(async () => {
  const clientInfo = { name: "average", version: "1.0.0" };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  send({ method: "notifications/initialized" });
  let seen = await call("begin_session", { market: "synthetic/btc-1h", bars: 120 });
  const { session } = seen;
  for (let closes = []; !seen.finished; ) {
    closes = [...closes, seen.features.close].slice(-20);
    const mean = closes.reduce((sum, close) => sum + close, 0) / closes.length;
    seen = await call("decide", { session, target: closes.at(-1) > mean ? 1 : 0 });
  }
  console.log((await call("end_session", { session })).equity_hash);
  gym.stdin.end();
})();
