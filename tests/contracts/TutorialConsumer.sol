// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IFeeManager {
    function i_linkAddress() external view returns (address);
}

interface IVerifierProxy {
    function verify(bytes calldata payload, bytes calldata parameterPayload) external payable returns (bytes memory);

    function verifyBulk(bytes[] calldata payloads, bytes calldata parameterPayload)
        external
        payable
        returns (bytes[] memory);

    function s_feeManager() external view returns (IFeeManager);
}

/// @title Verifies reports in the way of published tutorials: it asks for the fee manager first, and passes on what it was sent.
contract TutorialConsumer {
    IVerifierProxy private immutable verifierProxy;
    int192 public lastPrice;

    constructor(address proxy) {
        verifierProxy = IVerifierProxy(proxy);
    }

    function verifyReport(bytes calldata report) external payable {
        lastPrice = priceOf(verifierProxy.verify{value: msg.value}(report, parameterPayload()));
    }

    function verifyReports(bytes[] calldata reports) external payable {
        bytes[] memory bodies = verifierProxy.verifyBulk{value: msg.value}(reports, parameterPayload());
        lastPrice = priceOf(bodies[bodies.length - 1]);
    }

    function parameterPayload() private view returns (bytes memory) {
        IFeeManager feeManager = verifierProxy.s_feeManager();
        return address(feeManager) == address(0) ? bytes("") : abi.encode(feeManager.i_linkAddress());
    }

    function priceOf(bytes memory body) private pure returns (int192 price) {
        (,,,,,, price,,) = abi.decode(body, (bytes32, uint32, uint32, uint192, uint192, uint32, int192, int192, int192));
    }
}
