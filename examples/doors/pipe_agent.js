// Long while the close is above its average of 20 bars.
//
// agent-gym backtest --agent door/pipe --param command="node examples/doors/pipe_agent.js" \
//     --market synthetic/btc-1h --bars 2000

let column = 0, closes = [];
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const question = JSON.parse(line), answer = { id: question.id };
  if (question.ask === "hello") {
    answer.protocol = 1;
  } else if (question.ask === "start") {
    column = question.episode.features.indexOf("close");
    closes = [];
  } else if (question.ask === "act") {
    closes = [...closes, question.features[column]].slice(-20);
    const mean = closes.reduce((sum, close) => sum + close, 0) / closes.length;
    answer.target = closes.at(-1) > mean ? 1 : 0;
  }
  console.log(JSON.stringify(answer));
});
