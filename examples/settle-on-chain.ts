// From a stream to a settled trade: two accounts bet on a price in a few seconds, and the signed report of that second decides, on-chain.
// Run: npx sealpost sandbox --chain, export what it prints, then npx tsx examples/settle-on-chain.ts [pair or feed ID]
import { createClient, decode, formatDecimal } from '@sealpost/client';
import {
  createWalletClient,
  getContract,
  type Hex,
  http,
  parseAbi,
  parseEther,
  parseEventLogs,
  publicActions,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { hardhat } from 'viem/chains';

const abi = parseAbi([
  'function offer(address seller, bytes32 feedId, uint32 time, int192 strike) payable returns (uint256 id)',
  'function accept(uint256 id) payable',
  'function settle(uint256 id, bytes report)',
  'event TradeOffered(uint256 indexed id, address indexed buyer, address indexed seller)',
  'event TradeSettled(uint256 indexed id, address indexed winner, int192 price)',
]);
const setting = (name: string) =>
  process.env[name] ?? process.exit(console.error(`Export ${name}: the sandbox prints it.`) ?? 1);
const connect = (key: string) => {
  const account = privateKeyToAccount(setting(key) as Hex);
  const wallet = createWalletClient({ account, chain: hardhat, transport: http(setting('SEALPOST_RPC_URL')) });
  const client = wallet.extend(publicActions);
  const trades = getContract({ address: setting('SEALPOST_CONSUMER') as Hex, abi, client });
  const logsOf = async (hash: Hex) => (await client.waitForTransactionReceipt({ hash })).logs;
  return { account, trades, logsOf };
};
const [buyer, seller] = [connect('SEALPOST_BUYER_KEY'), connect('SEALPOST_SELLER_KEY')];
const [userId, secret] = [setting('SEALPOST_USER_ID'), setting('SEALPOST_SECRET')];
const client = createClient({ baseUrl: setting('SEALPOST_URL'), userId, secret });

const { feedId } = await client.findStream(process.argv[2] ?? 'ETH/USD');
const { report: newest } = await client.latest(feedId);
const [time, strike, value] = [newest.observationsTimestamp + 15, decode(newest).price, parseEther('1')];
const offer = await buyer.trades.write.offer([seller.account.address, feedId as Hex, time, strike], { value });
const [offered] = parseEventLogs({ abi, logs: await buyer.logsOf(offer), eventName: 'TradeOffered' });
const id = offered?.args.id ?? 0n;
await seller.logsOf(await seller.trades.write.accept([id], { value }));

for await (const report of client.stream([feedId], { from: time })) {
  if (report.validFromTimestamp > time) throw new Error(`No report is valid at ${time}.`);
  const settlement = await seller.trades.write.settle([id, report.fullReport as Hex]);
  const [settled] = parseEventLogs({ abi, logs: await seller.logsOf(settlement), eventName: 'TradeSettled' });
  const { price = 0n, winner } = settled?.args ?? {};
  const who = winner === buyer.account.address ? 'buyer' : 'seller';
  console.log(
    `Trade ${id} at ${time}: strike ${formatDecimal(strike)}, price ${formatDecimal(price)}, the ${who} wins.`,
  );
  break;
}
