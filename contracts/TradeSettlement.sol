// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {IReportVerifier} from "./IReportVerifier.sol";

/// @title Settles trades by signed price reports: an example of a consumer.
/// @notice Buyer and seller deposit the same stake. Whoever was right about the price at the trade's time gets both stakes: the buyer if it is
/// above the strike price, else the seller. Anyone may settle a trade, because the report alone decides.
/// @dev A report settles a trade if it is of the trade's stream and valid at the trade's time, so another report cannot be used instead, and
/// the same one cannot be used for a trade of another time. One report may settle every trade that it fits, each of them once.
contract TradeSettlement {
    enum Status {
        Offered,
        Open,
        Closed
    }

    struct Trade {
        address buyer;
        Status status;
        address seller;
        /// Unix time in seconds for which the price is taken.
        uint32 time;
        bytes32 feedId;
        /// 18 decimals, as in reports.
        int192 strike;
        uint256 stake;
    }

    /// @dev The fields of a report of schema version 3, crypto advanced.
    struct Report {
        bytes32 feedId;
        uint32 validFromTimestamp;
        uint32 observationsTimestamp;
        uint192 nativeFee;
        uint192 linkFee;
        uint32 expiresAt;
        int192 price;
        int192 bid;
        int192 ask;
    }

    /// @notice How long after its time a trade can be settled; then the stakes can be returned.
    uint256 public constant SETTLEMENT_PERIOD = 1 days;

    /// @notice What verifies the reports.
    IReportVerifier public immutable verifier;
    Trade[] private trades;
    /// @notice What an account can withdraw, in wei.
    mapping(address account => uint256) public balanceOf;

    event TradeOffered(uint256 indexed id, address indexed buyer, address indexed seller);
    event TradeOpened(uint256 indexed id);
    event TradeSettled(uint256 indexed id, address indexed winner, int192 price);
    event TradeCancelled(uint256 indexed id);

    error UnsupportedStream(bytes32 feedId);
    error TimeNotInFuture(uint256 time);
    error WrongStake(uint256 sent, uint256 expected);
    error NotYourTrade();
    error UnknownTrade(uint256 id);
    /// @notice The trade is not accepted yet, or accepted already, or closed.
    error WrongStatus(Status status);
    error WrongStream(bytes32 feedId, bytes32 expected);
    /// @notice The report is not valid at the time of the trade.
    error WrongTime(uint256 validFrom, uint256 observations, uint256 time);
    error ReportExpired(uint256 expiresAt);
    error TooLate(uint256 deadline);
    error TooEarly(uint256 deadline);
    error TransferFailed();

    constructor(IReportVerifier verifier_) {
        verifier = verifier_;
    }

    /// @notice Offers a trade to a seller; the value sent is the stake of either side.
    /// @param feedId A stream of schema version 3 with timestamps in seconds: its feed ID begins with 0x0003.
    /// @param time Unix time in seconds, in the future.
    /// @param strike Price with 18 decimals.
    /// @return id The number of the trade.
    function offer(address seller, bytes32 feedId, uint32 time, int192 strike) external payable returns (uint256 id) {
        if (bytes2(feedId) != 0x0003) revert UnsupportedStream(feedId);
        if (time <= block.timestamp) revert TimeNotInFuture(time);
        if (msg.value == 0) revert WrongStake(0, 1);
        id = trades.length;
        trades.push(Trade(msg.sender, Status.Offered, seller, time, feedId, strike, msg.value));
        emit TradeOffered(id, msg.sender, seller);
    }

    /// @notice Accepts an offer by depositing the same stake, before the time of the trade.
    function accept(uint256 id) external payable {
        Trade storage trade = tradeAt(id);
        if (trade.status != Status.Offered) revert WrongStatus(trade.status);
        if (msg.sender != trade.seller) revert NotYourTrade();
        if (trade.time <= block.timestamp) revert TimeNotInFuture(trade.time);
        if (msg.value != trade.stake) revert WrongStake(msg.value, trade.stake);
        trade.status = Status.Open;
        emit TradeOpened(id);
    }

    /// @notice Settles an open trade, once. Anyone may call this.
    /// @param report The `fullReport` that is valid at the time of the trade.
    function settle(uint256 id, bytes calldata report) external {
        Trade storage trade = tradeAt(id);
        if (trade.status != Status.Open) revert WrongStatus(trade.status);
        if (block.timestamp > deadlineOf(trade)) revert TooLate(deadlineOf(trade));
        trade.status = Status.Closed; // before the call, so that the verifier cannot settle it a second time
        Report memory signed = abi.decode(verifier.verify(report, ""), (Report));
        if (signed.feedId != trade.feedId) revert WrongStream(signed.feedId, trade.feedId);
        if (trade.time < signed.validFromTimestamp || trade.time > signed.observationsTimestamp)
            revert WrongTime(signed.validFromTimestamp, signed.observationsTimestamp, trade.time);
        if (block.timestamp > signed.expiresAt) revert ReportExpired(signed.expiresAt);
        address winner = signed.price > trade.strike ? trade.buyer : trade.seller;
        balanceOf[winner] += 2 * trade.stake;
        emit TradeSettled(id, winner, signed.price);
    }

    /// @notice Returns the stakes: of an offer at any time to its buyer, of an open trade if no report has settled it in time.
    function cancel(uint256 id) external {
        Trade storage trade = tradeAt(id);
        if (trade.status == Status.Offered) {
            if (msg.sender != trade.buyer) revert NotYourTrade();
        } else {
            if (trade.status != Status.Open) revert WrongStatus(trade.status);
            if (block.timestamp <= deadlineOf(trade)) revert TooEarly(deadlineOf(trade));
            balanceOf[trade.seller] += trade.stake;
        }
        trade.status = Status.Closed;
        balanceOf[trade.buyer] += trade.stake;
        emit TradeCancelled(id);
    }

    /// @notice Pays out what the caller has won or got back.
    function withdraw() external {
        uint256 amount = balanceOf[msg.sender];
        balanceOf[msg.sender] = 0;
        (bool sent,) = msg.sender.call{value: amount}("");
        if (!sent) revert TransferFailed();
    }

    /// @notice A trade by its number.
    function tradeOf(uint256 id) external view returns (Trade memory) {
        return tradeAt(id);
    }

    function tradeAt(uint256 id) private view returns (Trade storage) {
        if (id >= trades.length) revert UnknownTrade(id);
        return trades[id];
    }

    function deadlineOf(Trade storage trade) private view returns (uint256) {
        return uint256(trade.time) + SETTLEMENT_PERIOD;
    }
}
