// The same bot in JavaScript: npm install ccxt; node bot.mjs
import ccxt from 'ccxt';

const { SANDBOX_URL: url, SANDBOX_KEY: apiKey, SANDBOX_SECRET: secret, TIMEFRAME = '1h' } = process.env;
// Every address is moved: one left out would still lead to the real exchange.
const moved = (tree) => (typeof tree === 'string'
  ? tree.replace(/^https:\/\/[^/]+/, url).replace(/^wss:\/\/([^/:]+)(:\d+)?/, `${url.replace('http', 'ws')}/$1`)
  : Object.fromEntries(Object.entries(tree).map(([name, part]) => [name, moved(part)])));
const exchange = new ccxt.binance({ apiKey, secret, enableRateLimit: false });
exchange.urls.api = moved(exchange.urls.api);
const [symbol] = Object.keys(await exchange.loadMarkets());
const [base, quote] = symbol.split('/');
const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
for (let finished = false; !finished;) {
  const closes = (await exchange.fetchOHLCV(symbol, TIMEFRAME, undefined, 61)).slice(0, -1).map((row) => row[4]);
  const rising = mean(closes.slice(-20)) > mean(closes.slice(-60));
  const balance = await exchange.fetchBalance();
  const held = balance[base].free, worth = held * closes.at(-1);
  if (rising && worth < 10) await exchange.createMarketBuyOrderWithCost(symbol, 0.95 * balance[quote].free);
  if (!rising && worth > 10) await exchange.createMarketSellOrder(symbol, Number(exchange.amountToPrecision(symbol, held)));
  const told = await fetch(`${url}/sandbox/step`, { method: 'POST', headers: { 'X-MBX-APIKEY': apiKey } });
  finished = (await told.json()).finished;
}
console.log((await exchange.fetchMyTrades(symbol, undefined, 1000)).length, 'fills', (await exchange.fetchBalance()).total);
