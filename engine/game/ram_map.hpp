#pragma once

#include <cstdint>

/// Where Super Mario Bros keeps what we look at. The same for every revision of the game.
namespace wz::ram {

inline constexpr int kSize = 2048;

inline constexpr uint16_t kPlayerState = 0x000E;   ///< which routine moves Mario, see PlayerState
inline constexpr uint16_t kEnemyActive = 0x000F;   ///< 5 slots, non-zero = in use
inline constexpr uint16_t kEnemyType = 0x0016;     ///< 5 slots
inline constexpr uint16_t kFloatState = 0x001D;    ///< 0 ground, 1 jump, 2 fall, 3 flagpole or vine
inline constexpr uint16_t kFacing = 0x0033;        ///< 1 right, 2 left
inline constexpr uint16_t kPlayerXSpeed = 0x0057;  ///< signed, 1/16 pixel per frame
inline constexpr uint16_t kPlayerXPage = 0x006D;   ///< high byte of x in the area
inline constexpr uint16_t kEnemyXPage = 0x006E;    ///< 5 slots
inline constexpr uint16_t kPlayerX = 0x0086;       ///< low byte of x in the area
inline constexpr uint16_t kEnemyX = 0x0087;        ///< 5 slots
inline constexpr uint16_t kPlayerYSpeed = 0x009F;  ///< signed, pixels per frame, negative = up
inline constexpr uint16_t kPlayerYHigh = 0x00B5;   ///< 0 above the screen, 1 on it, more = below
inline constexpr uint16_t kEnemyYHigh = 0x00B6;    ///< 5 slots
inline constexpr uint16_t kEnemyY = 0x00CF;        ///< 5 slots, pixels from the top
inline constexpr uint16_t kPlayerYOnScreen = 0x03B8;  ///< pixels from the top
inline constexpr uint16_t kBlocks = 0x0500;           ///< two pages of 13 rows of 16 tiles
inline constexpr uint16_t kLoopsCorrect = 0x06D9;     ///< right turns in the running maze section
inline constexpr uint16_t kLoopsPassed = 0x06DA;      ///< turns in the running maze section
inline constexpr uint16_t kChangeAreaTimer = 0x06DE;  ///< frames until a pipe or vine leads on
inline constexpr uint16_t kSwimming = 0x0704;         ///< non-zero under water
inline constexpr uint16_t kScreenXPage = 0x071A;      ///< high byte of the screen's left edge
inline constexpr uint16_t kScreenX = 0x071C;          ///< low byte of the screen's left edge
inline constexpr uint16_t kLoopCommand = 0x0745;      ///< non-zero while a maze check is pending
inline constexpr uint16_t kAreaType = 0x074E;       ///< 0 water, 1 ground, 2 underground, 3 castle
inline constexpr uint16_t kAreaIndex = 0x074F;      ///< which map of that type is loaded
inline constexpr uint16_t kPower = 0x0756;          ///< 0 small, 1 tall, 2 fire
inline constexpr uint16_t kLife = 0x075A;           ///< lives left; 0xFF = game over
inline constexpr uint16_t kStage = 0x075C;          ///< 0..3, as the status bar counts
inline constexpr uint16_t kWorld = 0x075F;          ///< 0..7
inline constexpr uint16_t kArea = 0x0760;           ///< like kStage, entry scenes counted too
inline constexpr uint16_t kGameMode = 0x0770;       ///< see GameMode
inline constexpr uint16_t kGameTask = 0x0772;       ///< step within the mode; 3 = playing
inline constexpr uint16_t kStarTimer = 0x079F;      ///< non-zero while invincible
inline constexpr uint16_t kPrelevelTimer = 0x07A0;  ///< how long the lives screen stays
inline constexpr uint16_t kScore = 0x07DE;          ///< 6 decimal digits
inline constexpr uint16_t kCoins = 0x07ED;          ///< 2 decimal digits
inline constexpr uint16_t kTime = 0x07F8;           ///< 3 decimal digits

inline constexpr int kEnemySlots = 5;
inline constexpr uint8_t kGameOverLife = 0xFF;
inline constexpr uint8_t kPlayingTask = 3;
inline constexpr uint8_t kOnFlagpole = 3;  ///< kFloatState while sliding down

enum GameMode : uint8_t { kTitle = 0, kPlaying = 1, kWorldOver = 2, kGameOver = 3 };

enum PlayerState : uint8_t {
  kEnterStage = 0x00,
  kClimbVine = 0x01,
  kEnterSidePipe = 0x02,
  kEnterPipe = 0x03,
  kSlideFlagpole = 0x04,
  kWalkToCastle = 0x05,
  kDead = 0x06,
  kEnterArea = 0x07,
  kInControl = 0x08,
  kDying = 0x0B,
};

enum EnemyType : uint8_t { kBowser = 0x2D, kPowerUp = 0x2E, kFlagpoleFlag = 0x31 };

}  // namespace wz::ram
