// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title What a consumer calls to verify a report: ReportVerifier, or a published verifier proxy that takes no fee.
interface IReportVerifier {
    /// @notice Reverts unless a quorum of a registered signer set signed the report.
    /// @param payload The report: `fullReport` of the API.
    /// @param parameterPayload The ABI-encoded address of the fee token; ignored where there is no fee.
    /// @return body What was signed: the ABI-encoded fields of the report's schema.
    function verify(bytes calldata payload, bytes calldata parameterPayload) external payable returns (bytes memory body);
}
