// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {IReportVerifier} from "./IReportVerifier.sol";

/// @title Verifies signed price reports.
/// @notice A report is `abi.encode(bytes32[3] context, bytes body, bytes32[] rs, bytes32[] ss, bytes32 vs)`. `context[0]` is the config digest of
/// the signer set. A report is valid if exactly f + 1 distinct signers of that set signed `keccak256(keccak256(body) ‖ context)`.
/// @dev Functions and errors have the signatures of the published verifier contracts, so that a caller works with either. This contract takes
/// no fee, keeps ether that is sent with a report, as a published proxy without a fee manager does, has no proxy, and accepts only the canonical encoding of a report.
contract ReportVerifier is IReportVerifier {
    struct SignerSet {
        /// Number of signers that may be faulty; 0 if the set is not registered.
        uint8 f;
        bool retired;
        /// Position of each signer, from 1 to 31; 0 for other addresses.
        mapping(address signer => uint8) position;
    }

    /// @dev The last argument of `setConfig`; this contract pays no rewards.
    struct RewardRecipient {
        address addr;
        uint64 weight;
    }

    /// @dev One byte of `vs` each, and the limit of the published contracts.
    uint256 private constant SIGNERS_MAX = 31;

    /// @notice The zero address: there is no fee manager. Consumers that can pay fees ask for it.
    address public constant s_feeManager = address(0);

    /// @notice The account that registers and retires signer sets.
    address public owner;

    mapping(bytes32 configDigest => SignerSet) private signerSets;

    event ConfigSet(bytes32 indexed configDigest, address[] signers, uint8 f);
    event ConfigDeactivated(bytes32 indexed configDigest);
    event OwnershipTransferred(address indexed from, address indexed to);

    /// @notice Only the owner may do this.
    error AccessForbidden();
    error ZeroAddress();
    /// @notice A config digest names one signer set forever: a report must not change its meaning.
    error ConfigDigestAlreadySet();
    error DigestNotSet(bytes32 configDigest);
    /// @notice The signer set is retired.
    error DigestInactive(bytes32 configDigest);
    /// @notice With f = 0, one faulty signer could set the price.
    error FaultToleranceMustBePositive();
    error ExcessSigners(uint256 numSigners, uint256 maxSigners);
    error InsufficientSigners(uint256 numSigners, uint256 minSigners);
    /// @notice An address is in the signer set twice.
    error NonUniqueSignatures();
    /// @notice There is no one to reward: the list must be empty.
    error RewardsNotSupported();
    /// @notice The report has other bytes than `abi.encode` writes for its content.
    error NonCanonicalReport();
    error IncorrectSignatureCount(uint256 numSigners, uint256 expectedNumSigners);
    /// @notice A signature is malformed, not from a signer of the set, or the second one of the same signer.
    error BadVerification();

    modifier onlyOwner() {
        if (msg.sender != owner) revert AccessForbidden();
        _;
    }

    constructor() {
        owner = msg.sender;
        emit OwnershipTransferred(address(0), msg.sender);
    }

    /// @inheritdoc IReportVerifier
    function verify(bytes calldata payload, bytes calldata) external payable returns (bytes memory body) {
        return verifyReport(payload);
    }

    /// @notice Verifies several reports: all are valid, or the call reverts.
    /// @param payloads The reports.
    /// @return bodies What was signed, in the order of the reports.
    function verifyBulk(bytes[] calldata payloads, bytes calldata) external payable returns (bytes[] memory bodies) {
        bodies = new bytes[](payloads.length);
        for (uint256 i = 0; i < payloads.length; ++i) bodies[i] = verifyReport(payloads[i]);
    }

    /// @notice Registers a signer set. A registered set cannot be changed, only retired.
    /// @param configDigest The digest in the context of the set's reports.
    /// @param signers 3f + 1 to 31 distinct addresses.
    /// @param f How many signers may be faulty, at least 1; f + 1 sign each report.
    /// @param recipients Must be empty.
    function setConfig(bytes32 configDigest, address[] calldata signers, uint8 f, RewardRecipient[] calldata recipients)
        external
        onlyOwner
    {
        if (f == 0) revert FaultToleranceMustBePositive();
        if (signers.length > SIGNERS_MAX) revert ExcessSigners(signers.length, SIGNERS_MAX);
        if (signers.length <= 3 * uint256(f)) revert InsufficientSigners(signers.length, 3 * uint256(f) + 1);
        if (recipients.length > 0) revert RewardsNotSupported();
        SignerSet storage set = signerSets[configDigest];
        if (set.f > 0) revert ConfigDigestAlreadySet();
        set.f = f;
        for (uint256 i = 0; i < signers.length; ++i) {
            if (signers[i] == address(0)) revert ZeroAddress();
            if (set.position[signers[i]] > 0) revert NonUniqueSignatures();
            set.position[signers[i]] = uint8(i + 1);
        }
        emit ConfigSet(configDigest, signers, f);
    }

    /// @notice Retires a signer set, forever. From then on all of its reports are rejected, also older ones: the contract cannot know when a
    /// report was signed, and whoever has the keys can date a report back.
    function deactivateConfig(bytes32 configDigest) external onlyOwner {
        SignerSet storage set = signerSets[configDigest];
        if (set.f == 0) revert DigestNotSet(configDigest);
        if (set.retired) revert DigestInactive(configDigest);
        set.retired = true;
        emit ConfigDeactivated(configDigest);
    }

    /// @notice Gives the contract to another account, at once.
    function transferOwnership(address to) external onlyOwner {
        if (to == address(0)) revert ZeroAddress();
        emit OwnershipTransferred(owner, to);
        owner = to;
    }

    /// @notice What is registered for a config digest; f is 0 if nothing is.
    function signerSetOf(bytes32 configDigest) external view returns (uint8 f, bool retired) {
        SignerSet storage set = signerSets[configDigest];
        return (set.f, set.retired);
    }

    /// @notice Whether an address is in a signer set, retired or not.
    function isSigner(bytes32 configDigest, address account) external view returns (bool) {
        return signerSets[configDigest].position[account] > 0;
    }

    function verifyReport(bytes calldata report) private view returns (bytes memory) {
        (bytes32[3] memory context, bytes memory body, bytes32[] memory rs, bytes32[] memory ss, bytes32 vs) =
            abi.decode(report, (bytes32[3], bytes, bytes32[], bytes32[], bytes32));
        // Decoding follows any offset and skips unused bytes, so one report would have endless encodings.
        if (keccak256(abi.encode(context, body, rs, ss, vs)) != keccak256(report)) revert NonCanonicalReport();

        SignerSet storage set = signerSets[context[0]];
        if (set.f == 0) revert DigestNotSet(context[0]);
        if (set.retired) revert DigestInactive(context[0]);
        uint256 count = uint256(set.f) + 1;
        if (rs.length != count) revert IncorrectSignatureCount(rs.length, count);
        if (ss.length != count) revert IncorrectSignatureCount(ss.length, count);
        if (uint256(vs) << (8 * count) != 0) revert NonCanonicalReport();

        bytes32 digest = keccak256(abi.encodePacked(keccak256(body), context));
        uint256 seen = 0; // bit i: the signer at position i has signed
        for (uint256 i = 0; i < count; ++i) {
            uint8 v = uint8(vs[i]);
            if (v > 1) revert BadVerification();
            // Zero for a malformed signature; no signer has that address. A high s is accepted: it is still the signer's signature.
            uint256 position = set.position[ecrecover(digest, v + 27, rs[i], ss[i])];
            if (position == 0 || seen & (1 << position) != 0) revert BadVerification();
            seen |= 1 << position;
        }
        return body;
    }
}
