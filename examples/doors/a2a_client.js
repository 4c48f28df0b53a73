// A bot that trades at the gym's A2A endpoint: long while the close is above its average.
//
// agent-gym serve &
// node examples/doors/a2a_client.js http://127.0.0.1:8000 TOKEN

const [base, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };

(async () => {
  const card = await (await fetch(`${base}/.well-known/agent-card.json`, { headers })).json();
  const url = card.supportedInterfaces[0].url;
  const call = async (name, args) => {
    const parts = [{ data: { call: name, arguments: args } }];
    const params = { message: { messageId: "1", role: "ROLE_USER", parts } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params });
    const reply = await (await fetch(url, { method: "POST", headers, body })).json();
    return reply.result.message.parts[0].data;
  };
  let seen = await call("begin_session", { market: "synthetic/btc-1h", bars: 120 });
  for (let closes = []; !seen.finished; ) {
    closes = [...closes, seen.features.close].slice(-20);
    const mean = closes.reduce((sum, close) => sum + close, 0) / closes.length;
    seen = await call("decide", { session: seen.session, target: closes.at(-1) > mean ? 1 : 0 });
  }
  console.log((await call("end_session", { session: seen.session })).equity_hash);
})();
