// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {TradeSettlement} from "../../contracts/TradeSettlement.sol";

/// @notice A verifier that settles the same trade again while it is asked about a report, and believes every report.
contract ReentrantVerifier {
    /// Whether the second settlement went through.
    bool public succeeded;

    function verify(bytes calldata payload, bytes calldata) external returns (bytes memory) {
        try TradeSettlement(msg.sender).settle(0, payload) {
            succeeded = true;
        } catch {}
        return payload;
    }
}
